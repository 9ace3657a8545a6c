/*
 * Takes the parameters out of the address of a page that has used them up: a code must not stay in the history, and a
 * message must not come again with a reload.
 */

history.replaceState(null, '', location.pathname);
