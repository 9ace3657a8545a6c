-- The pace of routes on which a guard refused that we know nothing of; numbers in, numbers out, milliseconds.
--
-- A refusal teaches how much the guard lets through: so many requests of the busy stretch had passed, and when it will
-- let the next one through is said. From then on the route's requests keep a distance, and so do those of every other
-- route of the stretch, each at its own share: the guard may be common to them.

local LEARNED_FACTOR = 1.25             -- slower than what the guard let through: requests do not arrive evenly
local SPREAD_FACTOR = 0.75              -- the slowest pace still uses the permits up in this share of the window
local FLOOR_FACTOR = 1.25               -- more than a distance that was too short
local APART_SHARE = 0.5                 -- of even distances, between requests of different routes
local CATCH_UP_FACTOR = 14              -- at most so many times as fast as the limit allows in the long run
local STRETCH_IDLE_MS = 1000            -- a busy stretch is over when nothing went for so long
local ACTIVE_MS = 2000                  -- a paced route without a request for so long leaves its share to the others
local FULL_PACE_MS = 5 * 60 * 1000      -- a pace is kept for so long after the last refusal
local FADING_MS = 5 * 60 * 1000         -- and then fades for so long

local pacing = {}

function pacing.is_same_stretch(last, now)
  return last ~= nil and now - last <= STRETCH_IDLE_MS
end

-- Until `hold` it may be waiting for the guard.
function pacing.is_active(last, hold, now)
  return now - math.max(last or hold, hold) <= ACTIVE_MS
end

-- `taught` is the time from the first request of the stretch to the refused one, and the wait that the guard asked for.
function pacing.learned_gap(passed, taught)
  return LEARNED_FACTOR * taught / math.max(passed, 1)
end

-- In what is left of the window in which the guard refused, too many permits may be left for their number to say
-- anything of the guard: how close requests may follow each other there. A wait in whole seconds may be up to one too
-- long, so the truth lies between the stretch with that and without: the middle of them, in proportion.
function pacing.catch_up_gap(passed, stretch, retry_after, even)
  local least = stretch + (retry_after % 1000 == 0 and retry_after - 1000 or retry_after)
  local likely = math.sqrt(least * (stretch + retry_after)) / math.max(passed, 1)
  return math.min(likely, even / CATCH_UP_FACTOR)
end

-- How much of the gap is kept so long after the last refusal.
function pacing.strength(refused_for)
  return math.max(0, math.min(1, 1 - (refused_for - FULL_PACE_MS) / FADING_MS))
end

-- The slowest pace: the permits left, evenly until some time before the window's end, and not slower than the limit
-- allows in the contract's window. `routes` that are paced share this. `catch_up` is the fastest, where there is one.
-- While nothing is known about the window, the pace is the one that was kept last (`went`), if that was faster: the
-- request that finds out about a new window must not be late.
function pacing.slowest_gap(left, length, permits, even, routes, catch_up, went)
  if left == nil then return math.min(even * routes, went or even * routes) end
  local usable = math.max(left - (1 - SPREAD_FACTOR) * length, left / 2)
  return math.min(even, math.max(usable / math.max(permits, 1), catch_up)) * routes
end

-- The distance at which the limit, in the contract's window, is never used up early.
function pacing.even_gap(window, limit)
  return window / math.max(limit, 1)
end

-- Refused although it kept its pace: twice as slow. One that had begun to fade is kept in full again.
function pacing.slower(gap, strength, window)
  return strength < 1 and gap or math.min(gap * 2, window)
end

-- Refused at the slowest pace, which was faster than what had been learned: this guard lets less through than the limit
-- does. From then on a longer distance is kept, whatever is left of the window: as long as the requests that passed
-- since the refusal before took, with the wait that the guard asks for now, and by one request fewer.
function pacing.floor(floor, gap, strength, went, passed, taught)
  if strength < 1 or went >= gap then return floor end
  local sure = passed > 0 and math.min(gap, taught / math.max(passed - 1, 1)) or 0
  return math.max(floor, went * FLOOR_FACTOR, sure)
end

-- `hold` is when the guard lets requests through again. The route need not be under the guard: so it waits for that
-- not longer than until `at_most`. `last_other` is the latest request of the other routes that share the pace: those
-- that waited for the same moment do not go together.
function pacing.wait(last, gap, last_other, routes, hold, at_most, now)
  local apart = last_other and last_other + APART_SHARE * gap / routes or now
  return math.max(last and last + gap or now, apart, math.min(hold, at_most)) - now
end
