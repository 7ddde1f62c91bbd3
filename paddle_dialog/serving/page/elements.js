// Elements made in code. Text is inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Find the elements of a tab, whose ids begin with the task's name: `part("form")` is `#<task>-form`. */
export const partsOf = (task) => (name) => byId(`${task}-${name}`);

/**
 * An element.
 * @param {string} tag
 * @param {object} attributes by name; null and false leave one out, true sets it empty
 * @param {...(Node|string)} children strings become text
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
export function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A button that does something. */
export function button(label, attributes, act) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/** Fill a list of choices, each `[value, label]`, and choose what is wanted, else the first. */
export function fillChoices(list, options, wanted = list.value) {
  list.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
  list.value = (options.find(([value]) => value === wanted) ?? options[0])[0];
}

/** Lay a length, an angle or a share into a style rule; the content security policy allows no style attribute. */
export function setVariable(target, name, value) {
  target.style.setProperty(name, String(value));
  return target;
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
