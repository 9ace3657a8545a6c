/*
 * Takes the parameters out of the address of an install that failed: they are spent, and neither the browser's history
 * nor a picture of the page has to show a code.
 */

history.replaceState(null, '', location.pathname);
