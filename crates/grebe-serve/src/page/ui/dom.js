// Elements in a line of code, and changes only where something changed.

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, any>} properties attributes; functions are listeners @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** @param {string} words what it shows @param {string} title its name for a person, with its key @param {() => void} click @param {Record<string, any>} more */
export function button(words, title, click, more = {}) {
  // The name of a button that shows a sign is what it does.
  const label = /\w\w/.test(words) ? null : title.replace(/ {2}\(.*\)$/, "");
  return el("button", { type: "button", title, "aria-label": label, click, ...more }, words);
}

/** Sets text only if it changed, to avoid a new layout. @param {Element} element @param {string} words */
export function setText(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

/** @param {Element} element @param {string} name @param {string | boolean | null} value */
export function setAttribute(element, name, value) {
  if (value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** A menu of choices. @param {string} label @param {[string, string][]} choices value and words @param {(value: string) => void} chosen */
export function select(label, choices, chosen) {
  const list = el("select", { "aria-label": label, title: label }, ...choices.map(([value, words]) => el("option", { value }, words)));
  list.addEventListener("change", () => chosen(list.value));
  return list;
}

/** Sets a menu's value, unless a person has it open. @param {HTMLSelectElement} list @param {string} value */
export function setChoice(list, value) {
  if (list.value !== value) list.value = value;
}
