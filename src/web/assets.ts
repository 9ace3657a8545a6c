import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import { VIEWS_DIRECTORY } from './render.ts';

/**
 * Stylesheet, script and pictures. The browser keeps them and asks each time whether its copy is still good
 * (ETag, 304): always right after a deployment, also while two versions of the app run side by side.
 */
export function assets(): RequestHandler {
  return express.static(join(VIEWS_DIRECTORY, 'assets'), {
    index: false,
    redirect: false,
    fallthrough: true,
    setHeaders: (res) => res.setHeader('Cache-Control', 'public, no-cache'),
  });
}
