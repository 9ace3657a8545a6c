import { request } from 'undici';

/** A company of the sandbox, as far as the demo needs to know it. */
export interface DemoCompany {
  id: string;
  name: string;
  teammates: { id: string; is_admin: boolean }[];
  counts: Record<string, number>;
}

/** A request that the sandbox saw. */
export interface SeenRequest {
  path: string;
  status: number;
  company_id: string | null;
}

/** The sandbox's companies, the smallest first. */
export async function listCompanies(sandboxUrl: string): Promise<DemoCompany[]> {
  const { companies } = (await control(sandboxUrl, 'state')) as { companies: DemoCompany[] };
  return companies.toSorted((one, other) => size(one) - size(other));
}

/** What the sandbox saw of a company, at its API. */
export async function listRequests(sandboxUrl: string, companyId: string): Promise<SeenRequest[]> {
  const all = (await control(sandboxUrl, 'requests?after=0')) as SeenRequest[];
  return all.filter(({ company_id, path }) => company_id === companyId && !path.startsWith('/oauth/'));
}

function size({ counts }: DemoCompany): number {
  return (counts.contacts ?? 0) + (counts.conversations ?? 0);
}

async function control(sandboxUrl: string, path: string): Promise<unknown> {
  const answer = await request(`${sandboxUrl}/_sandbox/${path}`);
  return answer.body.json();
}
