import express, { type Express } from 'express';
import { healthRoutes } from './routes/health.ts';

/** What machines ask, alone: for a process without the web app. */
export function createHealthApp(deps: Parameters<typeof healthRoutes>[0]): Express {
  return express().disable('x-powered-by').use(healthRoutes(deps));
}
