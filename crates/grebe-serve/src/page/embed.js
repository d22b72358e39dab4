// A scope in any page: `attach(element, { url, token })`. The page of `grebe serve` itself is made so.

import { Scope } from "./ui/scope.js";

/**
 * Shows the scope of a `grebe serve` in an element, which should have a height.
 *
 * @param {HTMLElement} element gets a shadow root: it may have none yet
 * @param {object} [options]
 * @param {string} [options.url] of the server, as `http://lab:8080/`; where this module came from, if it is not given
 * @param {string} [options.token] as in the link that the server printed
 * @param {string} [options.view] what to show, as behind the `#` of a link to a view
 * @param {boolean} [options.keys] whether keys work wherever the focus is, and not in the element alone
 * @param {(source: number) => void} [options.onSource] told when a person chose another of the server's sources, from 1
 * @returns {{close: () => void}} `close` ends the connection and empties the element
 */
export function attach(element, { url = new URL(".", import.meta.url).href, token = "", view = "", keys = false, onSource = () => {} } = {}) {
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const style = document.createElement("link");
  [style.rel, style.href] = ["stylesheet", new URL("style.css", import.meta.url).href];
  root.replaceChildren(style);
  const server = new URL(url, document.baseURI);
  const scope = new Scope(element, root, { url: server, token, view, pageUrl: server, keys: keys ? document : element, onSource });
  return {
    close() {
      scope.close();
      root.replaceChildren();
    },
  };
}
