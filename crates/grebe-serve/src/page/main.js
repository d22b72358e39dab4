// The page of `grebe serve`. Token and view are in the URL's fragment, which browsers never send.

import { attach } from "./embed.js";

const KEY = "grebe-token";
const said = new URLSearchParams(location.hash.slice(1));
const given = said.get("token");
if (given !== null) {
  keep(given);
  // Removes the token from the address bar, and from copies of it.
  said.delete("token");
  history.replaceState(null, "", said.size > 0 ? `#${said}` : location.pathname);
}
attach(/** @type {HTMLElement} */ (document.getElementById("scope")), { token: given ?? kept(), view: said.toString(), keys: true, onSource: stay });

// Another view's link, opened in this tab.
addEventListener("hashchange", () => location.reload());

/** After a reload, the page shows the selected source. @param {number} source */
function stay(source) {
  history.replaceState(null, "", source > 1 ? `#source=${source}` : location.pathname);
}

/** Kept while the tab is open. @param {string} token */
function keep(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // In a frame of another page, storage may be blocked: the page works, but asks for the token again.
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}


