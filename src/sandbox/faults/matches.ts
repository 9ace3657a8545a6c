import { meansRequest } from '../http/path-pattern.ts';
import type { FaultMatch, FaultTarget } from './fault.ts';

/** Whether a fault is for this request, but for its turn. */
export function matches(match: FaultMatch, target: FaultTarget): boolean {
  const { method, path, company_id, client_id } = match;
  if (method !== undefined && method.toUpperCase() !== target.method) return false;
  if (company_id !== undefined && company_id !== target.companyId) return false;
  if (client_id !== undefined && client_id !== target.application) return false;
  return path === undefined || meansRequest(path, target.path, target.route);
}
