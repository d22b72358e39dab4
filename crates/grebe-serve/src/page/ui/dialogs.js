// Help, lists and prompts from the server's texts, a link to the view, and the question for a token.

import { button, el, setText } from "./dom.js";
import { setWidgets } from "./widgets.js";

/** @typedef {import("./scope.js").Scope} Scope */

export class Dialogs {
  #scope;
  #help = el("dialog", { "aria-label": "keys" });
  #list = el("div", { class: "list", role: "dialog", hidden: true });
  #listTitle = el("p", { class: "dim" });
  #listRows = el("div", { class: "entries" });
  #prompt;
  #question = el("label", { class: "dim", for: "answer" });
  #answer = el("input", { type: "text", id: "answer", spellcheck: "false", autocomplete: "off" });
  #refused = el("p", { class: "refused", role: "status" });
  #link = el("input", { type: "text", readonly: true, "aria-label": "link" });
  #withToken = el("input", { type: "checkbox", id: "with-token" });
  #linkDialog;
  #token = el("input", { type: "password", "aria-label": "token", autocomplete: "off" });
  #tokenWords = el("p");
  #tokenDialog;

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    this.#help.addEventListener("cancel", (event) => {
      event.preventDefault();
      scope.do({ key: "Escape" });
    });
    this.#help.addEventListener("click", (event) => event.target === this.#help && scope.do({ key: "Escape" }));
    this.#list.append(this.#listTitle, this.#listRows);
    this.#prompt = el("form", {
      class: "prompt", hidden: true,
      submit: (/** @type {Event} */ event) => {
        event.preventDefault();
        scope.do({ answer: this.#answer.value });
      },
    }, this.#question, this.#answer, this.#refused);
    this.#answer.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Escape") scope.do({ key: event.key });
    });
    this.#withToken.addEventListener("change", () => this.#writeLink());
    this.#link.addEventListener("focus", () => this.#link.select());
    const copied = el("span", { role: "status", class: "dim" });
    const copy = button("copy", "copy the link", async () => {
      copied.textContent = (await copyText(this.#link)) ? "copied" : "select it and copy it with Ctrl-C";
    });
    this.#linkDialog = dialog("a link to this view",
      el("p", { class: "dim" }, "The link contains stream, time, zoom and settings. To open it, a person needs a token, unless the link contains one."),
      el("div", { class: "row" }, this.#link, copy, copied),
      el("label", {}, this.#withToken, " with the token: anyone with the link can see the stream"));
    const form = el("form", {
      submit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const token = this.#token.value.trim();
        // Accept a pasted link, too.
        scope.connection.retry(/token=([^&\s]+)/.exec(token)?.[1] ?? token);
        this.#tokenDialog.close();
      },
    }, this.#tokenWords, el("div", { class: "row" }, this.#token, el("button", { type: "submit" }, "go in")));
    this.#tokenDialog = dialog("token", form,
      el("p", { class: "dim" }, "grebe serve prints a link that holds the token. Paste the link or the token here."));
    this.elements = [this.#help, this.#linkDialog, this.#tokenDialog];
    /** Dialogs over the traces. */
    this.overlays = [this.#list, this.#prompt];
  }

  /** Shows the dialogs that the server opened. @param {import("../data/shown.js").Shown} shown */
  update({ help, list, prompt }) {
    if (this.#help.open !== help.length > 0) {
      const close = button("×", "close  (esc)", () => this.#scope.do({ key: "Escape" }), { class: "close" });
      const groups = help.map(([title, lines]) =>
        el("section", {}, el("h3", {}, title), el("dl", {}, ...lines.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)]))));
      this.#help.replaceChildren(el("h2", {}, "keys", close), el("div", { class: "keys" }, ...groups));
      if (help.length > 0) this.#help.showModal();
      else this.#help.close();
    }
    this.#list.hidden = list === null;
    if (list) {
      setText(this.#listTitle, list.title);
      setWidgets(this.#scope, this.#listRows, list.rows);
      [...this.#listRows.children].forEach((row, place) => row.toggleAttribute("data-marked", place === list.marked));
    }
    const wasHidden = this.#prompt.hidden;
    this.#prompt.hidden = prompt === null;
    if (prompt) {
      setText(this.#question, prompt.question);
      setText(this.#refused, prompt.refused);
      if (wasHidden) {
        this.#answer.value = prompt.text;
        this.#answer.focus();
      }
    } else if (!wasHidden) this.#answer.blur();
  }

  openLink() {
    this.#withToken.checked = false;
    this.#writeLink();
    this.#linkDialog.showModal();
  }

  /** @param {string} why */
  askForToken(why) {
    this.#tokenWords.textContent = why;
    if (!this.#tokenDialog.open) this.#tokenDialog.showModal();
  }

  get isOpen() {
    return this.elements.some((dialog) => dialog !== this.#help && dialog.open);
  }

  #writeLink() {
    const { connection, pageUrl } = this.#scope;
    const url = new URL(pageUrl);
    url.hash = this.#scope.fragment(this.#withToken.checked ? connection.token : null);
    this.#link.value = url.href;
  }
}

/** @param {string} title @param {(Node | string)[]} inside */
function dialog(title, ...inside) {
  const element = el("dialog", { "aria-label": title });
  element.append(el("h2", {}, title, button("×", "close  (esc)", () => element.close(), { class: "close" })), ...inside);
  // A click outside closes it.
  element.addEventListener("click", (event) => event.target === element && element.close());
  return element;
}

/** Browsers have a clipboard only over https and on localhost. @param {HTMLInputElement} input */
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
