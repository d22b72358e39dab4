// Help, a link to the view, and the question for a token.

import { toFragment } from "../model/link.js";
import { button, el } from "./dom.js";
import { KEY_GROUPS } from "./keys.js";
import { sourceControls } from "./source.js";

/** @typedef {import("./scope.js").Scope} Scope */

export class Dialogs {
  #scope;
  #help;
  #link = el("input", { type: "text", readonly: true, "aria-label": "link" });
  #withToken = el("input", { type: "checkbox", id: "with-token" });
  #linkDialog;
  #token = el("input", { type: "password", "aria-label": "token", autocomplete: "off" });
  #tokenWords = el("p");
  #tokenDialog;
  #source = el("div");
  #sourceDialog;

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const groups = KEY_GROUPS.map(([title, keys]) =>
      el("section", {}, el("h3", {}, title), el("dl", {}, ...keys.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)]))));
    this.#help = dialog("keys", el("div", { class: "keys" }, ...groups));
    this.#withToken.addEventListener("change", () => this.#writeLink());
    this.#link.addEventListener("focus", () => this.#link.select());
    const copied = el("span", { role: "status", class: "dim" });
    const copy = button("copy", "copy the link", async () => {
      copied.textContent = (await copyText(this.#link)) ? "copied" : "select it and copy it with Ctrl-C";
    });
    this.#linkDialog = dialog("a link to this view",
      el("p", { class: "dim" }, "Stream, time, zoom and settings are in it. Who opens it needs a token of their own, unless it is in the link too."),
      el("div", { class: "row" }, this.#link, copy, copied),
      el("label", {}, this.#withToken, " with the token: whoever has the link sees the stream"));
    const form = el("form", {
      submit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const token = this.#token.value.trim();
        // A whole link can be pasted too.
        scope.connection.retry(/token=([^&\s]+)/.exec(token)?.[1] ?? token);
        this.#tokenDialog.close();
      },
    }, this.#tokenWords, el("div", { class: "row" }, this.#token, el("button", { type: "submit" }, "go in")));
    this.#tokenDialog = dialog("token", form,
      el("p", { class: "dim" }, "grebe serve prints a link that holds the token. Paste the link or the token here."));
    this.#sourceDialog = dialog("source", this.#source);
    this.elements = [this.#help, this.#linkDialog, this.#tokenDialog, this.#sourceDialog];
  }

  openHelp() {
    toggle(this.#help);
  }

  openLink() {
    this.#withToken.checked = false;
    this.#writeLink();
    toggle(this.#linkDialog);
  }

  openSource() {
    const controls = sourceControls(this.#scope);
    if (!controls) return this.#scope.say("nothing of this source can be changed from here");
    this.#source.replaceChildren(controls);
    toggle(this.#sourceDialog);
  }

  /** @param {string} why */
  askForToken(why) {
    this.#tokenWords.textContent = why;
    if (!this.#tokenDialog.open) this.#tokenDialog.showModal();
  }

  get isOpen() {
    return this.elements.some((dialog) => dialog.open);
  }

  #writeLink() {
    const { settings, connection, pageUrl } = this.#scope;
    const url = new URL(pageUrl);
    url.hash = toFragment(settings, this.#withToken.checked ? connection.token : null);
    this.#link.value = url.href;
  }
}

/** @param {string} title @param {(Node | string)[]} inside */
function dialog(title, ...inside) {
  const element = el("dialog", { "aria-label": title });
  element.append(el("h2", {}, title, button("×", "close  (esc)", () => element.close(), { class: "close" })), ...inside);
  // A click beside it closes it.
  element.addEventListener("click", (event) => event.target === element && element.close());
  return element;
}

/** @param {HTMLDialogElement} dialog */
function toggle(dialog) {
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

/** The clipboard is there only over https and on localhost. @param {HTMLInputElement} input */
async function copyText(input) {
  try {
    await navigator.clipboard.writeText(input.value);
    return true;
  } catch {
    input.focus();
    input.select();
    return document.execCommand("copy");
  }
}
