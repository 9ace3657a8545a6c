// The control panel: looks twice a second, and at once after each change. Runs in the browser.
import { updateApplications } from './panel/applications.js';
import { updateClock } from './panel/clock.js';
import { updateCompanies } from './panel/companies.js';
import { updateFaultForm } from './panel/fault-form.js';
import { updateFaults } from './panel/faults.js';
import { knownRequests, updateJournal } from './panel/journal.js';
import { clearFailure, read, showFailure } from './panel/service.js';
import { updateSnapshots } from './panel/snapshots.js';
import { updateTokens } from './panel/tokens.js';

const LOOK_MS = 500;
const PARTS = [
  updateClock,
  updateCompanies,
  updateTokens,
  updateApplications,
  updateFaultForm,
  updateFaults,
  updateSnapshots,
  updateJournal,
];

let timer;
let isLost = false;
/** One look after the other: of two at a time both would bring the same requests. */
let looking = Promise.resolve();

async function look() {
  clearTimeout(timer);
  try {
    const data = await read(knownRequests());
    for (const update of PARTS) update(data);
    if (isLost) clearFailure();
    isLost = false;
  } catch (error) {
    isLost = true;
    showFailure(new Error(`The sandbox does not answer: ${error.message}`));
  }
  if (!document.hidden) timer = setTimeout(lookNext, LOOK_MS);
}

function lookNext() {
  looking = looking.then(look);
}

document.addEventListener('changed', lookNext);
document.addEventListener('visibilitychange', () => !document.hidden && lookNext());
lookNext();
