/*
 * Removes used parameters from the address: no code stays in the history, and no message returns with a reload.
 */

history.replaceState(null, '', location.pathname);
