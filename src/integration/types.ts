import type { z } from 'zod';
import type { RESOURCES } from './resources.ts';
import type { SETTINGS } from './settings.ts';

// The template's: it binds your tables, resources and settings to the types of the handler.

export type { HandlerTables } from './schema.ts';

/** A resource of `resources.ts`. */
export type KnownResource = (typeof RESOURCES)[number];

/** The values of `settings.ts`. */
export type Settings = z.output<typeof SETTINGS>;
