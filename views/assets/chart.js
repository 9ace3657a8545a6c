/*
 * A chart is read day by day: with the pointer, a finger, or the arrow keys. What a day says stands below it.
 */

function say(day) {
  for (const other of day.parentElement.children) other.setAttribute('tabindex', other === day ? 0 : -1);
  day.closest('figure').querySelector('.chart-said').textContent = day.getAttribute('aria-label');
}

for (const type of ['pointerover', 'pointerdown', 'focusin']) {
  addEventListener(type, ({ target }) => {
    const day = target.closest?.('.day');
    if (day) say(day);
  });
}

addEventListener('keydown', (event) => {
  const steps = { ArrowLeft: 'previousElementSibling', ArrowRight: 'nextElementSibling' };
  const next = event.target.closest?.('.day')?.[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  next.focus();
});
