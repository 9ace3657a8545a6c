// The clock ticks, and the buttons speak to the control interface in JSON. Runs in the browser.
const shown = document.querySelector('#now');
const failed = document.querySelector('#failed');
const loadedAt = Date.now();
const startedAt = Number(shown.dataset.now);

function tick() {
  const now = new Date(startedAt + Date.now() - loadedAt).toISOString();
  shown.dateTime = now;
  shown.textContent = now.slice(0, 19).replace('T', ' ');
}

async function press(button) {
  const { call, body, confirm: question } = button.dataset;
  if (question && !window.confirm(question)) return;
  button.disabled = true;
  try {
    const response = await fetch(`/_sandbox/${call}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    if (!response.ok) throw new Error((await response.json())._error.message);
    location.reload();
  } catch (error) {
    button.disabled = false;
    failed.hidden = false;
    failed.textContent = error.message;
  }
}

if (shown.dataset.frozen === 'false') setInterval(tick, 1000);
for (const button of document.querySelectorAll('[data-call]')) {
  button.addEventListener('click', () => press(button));
}
