/*
 * A chart is read day by day: with the pointer, the arrow keys, or the buttons below it. What a day says stands there, and
 * stays while the page is brought up to date.
 */

function say(day) {
  const chart = day.closest('figure');
  chart.dataset.used = '';
  for (const other of day.parentElement.children) other.setAttribute('tabindex', other === day ? 0 : -1);
  chart.querySelector('.chart-said').textContent = day.getAttribute('aria-label');
}

for (const type of ['pointerover', 'focusin']) {
  addEventListener(type, ({ target }) => {
    const day = target.closest?.('.day');
    if (day) say(day);
  });
}

addEventListener('click', ({ target }) => {
  const step = target.closest?.('[data-step]');
  const next = step?.closest('figure').querySelector('.day[tabindex="0"]')[step.dataset.step];
  if (next) say(next);
});

addEventListener('keydown', (event) => {
  const steps = { ArrowLeft: 'previousElementSibling', ArrowRight: 'nextElementSibling' };
  const next = event.target.closest?.('.day')?.[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  next.focus();
});
