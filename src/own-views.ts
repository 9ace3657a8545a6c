import { fileURLToPath } from 'node:url';

/** Where a fork puts pages and assets of its own. Tests run without them. */
export const OWN_VIEWS = fileURLToPath(new URL('./integration/views/', import.meta.url));
