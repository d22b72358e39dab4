// The page of `grebe serve`: token and view come in the fragment, which no server and no log ever sees.

import { attach } from "./embed.js";

const KEY = "grebe-token";
const said = new URLSearchParams(location.hash.slice(1));
const given = said.get("token");
if (given !== null) {
  keep(given);
  // Out of sight, and out of what is copied from the address bar.
  said.delete("token");
  history.replaceState(null, "", said.size > 0 ? `#${said}` : location.pathname);
}
attach(/** @type {HTMLElement} */ (document.getElementById("scope")), { token: given ?? kept(), view: said.toString(), keys: true, onSource: stay });

// Another view's link, opened in this tab.
addEventListener("hashchange", () => location.reload());

/** Loaded anew, the page shows the source that was chosen. @param {number} source */
function stay(source) {
  history.replaceState(null, "", source > 1 ? `#source=${source}` : location.pathname);
}

/** For as long as the tab is open. @param {string} token */
function keep(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // A frame of another page may keep nothing: it works, and asks again when it is loaded anew.
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}


