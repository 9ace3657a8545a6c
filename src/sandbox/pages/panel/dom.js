// Building and keeping elements. Text always goes in as text: names and journal are what others have sent.

/** An element with attributes (`class`, `aria-label`, …) and children: elements, or text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Puts text into an element, and leaves it alone when it says so already. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Brings an element's children in line with items. Those that stay are kept, so that focus and selection stay.
 *
 * @param update writes an item into its element, new or kept
 */
export function reconcile(parent, items, keyOf, create, update) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  for (const [place, item] of items.entries()) {
    const key = String(keyOf(item));
    const child = before.get(key) ?? create(item);
    child.dataset.key = key;
    before.delete(key);
    update(child, item);
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
  }
  for (const child of before.values()) child.remove();
}

/** Shows an element or hides it. */
export function show(element, shown) {
  element.hidden = !shown;
}

/** A bar for {@link setBar}. @param label what it measures */
export function makeBar(label, thin = false) {
  const bar = make('div', { class: thin ? 'bar thin' : 'bar', role: 'meter', 'aria-label': label });
  bar.append(make('div'));
  bar.setAttribute('aria-valuemin', '0');
  return bar;
}

/** @param words what the value means, for those who do not see the bar */
export function setBar(bar, value, most, words) {
  const share = most > 0 ? Math.max(0, Math.min(1, value / most)) : 0;
  bar.setAttribute('aria-valuenow', String(value));
  bar.setAttribute('aria-valuemax', String(most));
  bar.setAttribute('aria-valuetext', words);
  bar.firstElementChild.style.width = `${share * 100}%`;
  bar.classList.toggle('low', share > 0 && share <= 0.25);
  bar.classList.toggle('out', share === 0);
}
