-- The pace of routes on which a guard refused that we know nothing of; numbers in, numbers out, milliseconds.
--
-- A refusal teaches how much the guard lets through: so many requests of the busy stretch had passed, and when it will
-- let the next one through is said. From then on the route's requests keep a distance, and so do those of every other
-- route of the stretch, each at its own share: the guard may be common to them.

local LEARNED_FACTOR = 1.25             -- slower than what the guard let through: requests do not arrive evenly
local SPREAD_FACTOR = 0.9               -- the slowest pace still uses the permits up in this share of the time left
local STRETCH_IDLE_MS = 1000            -- a busy stretch is over when nothing went for so long
local ACTIVE_MS = 2000                  -- a paced route without a request for so long leaves its share to the others
local FULL_PACE_MS = 5 * 60 * 1000      -- a pace is kept for so long after the last refusal
local FADING_MS = 5 * 60 * 1000         -- and then fades for so long

local pacing = {}

function pacing.is_same_stretch(last, now)
  return last ~= nil and now - last <= STRETCH_IDLE_MS
end

function pacing.is_active(last, now)
  return last ~= nil and now - last <= ACTIVE_MS
end

-- `busy_for` is the time from the first request of the stretch to the refused one, `retry_after` what the guard said.
function pacing.learned_gap(passed, busy_for, retry_after)
  return LEARNED_FACTOR * (math.max(busy_for, 0) + retry_after) / math.max(passed, 1)
end

-- How much of the gap is kept so long after the last refusal.
function pacing.strength(refused_for)
  return math.max(0, math.min(1, 1 - (refused_for - FULL_PACE_MS) / FADING_MS))
end

-- The slowest pace: the permits left last for most of the time left, and the limit for the contract's window.
function pacing.slowest_gap(left, permits, window, limit, routes)
  local even = window / math.max(limit, 1)
  if left ~= nil then even = math.min(even, left * SPREAD_FACTOR / math.max(permits, 1)) end
  return even * routes
end

-- Refused although it kept its pace: twice as slow. One that had begun to fade is kept in full again.
function pacing.slower(gap, strength, window)
  return strength < 1 and gap or math.min(gap * 2, window)
end

-- Two requests that were refused together: one fewer had passed than was thought.
function pacing.corrected_gap(gap, passed)
  return passed > 1 and gap * passed / (passed - 1) or gap
end

-- `hold` is when the guard lets requests through again. The route need not be under the guard: so it waits for that
-- not longer than the slowest pace would let it.
function pacing.wait(last, gap, strength, hold, refused_at, slowest, now)
  local next_at = last and last + math.min(gap * strength, slowest) or now
  return math.max(next_at, math.min(hold, refused_at + slowest)) - now
end
