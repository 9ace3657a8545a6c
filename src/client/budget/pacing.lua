-- The pace of routes on which a guard refused that we know nothing of; numbers in, numbers out, milliseconds.
--
-- A refusal teaches how much the guard lets through: so many requests of the busy stretch had passed, and when it will
-- let the next one through is said. From then on the route's requests keep a distance, and so do those of every other
-- route of the stretch, each at its own share: the guard may be common to them.

local LEARNED_FACTOR = 1.25             -- slower than what the guard let through: requests do not arrive evenly
local SPREAD_FACTOR = 0.9               -- the slowest pace still uses the permits up in this share of the window
local FLOOR_FACTOR = 1.25               -- more than a distance that was too short
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

-- `taught` is the time from the first request of the stretch to the refused one, and the wait that the guard asked for.
function pacing.learned_gap(passed, taught)
  return LEARNED_FACTOR * taught / math.max(passed, 1)
end

-- How much of the gap is kept so long after the last refusal.
function pacing.strength(refused_for)
  return math.max(0, math.min(1, 1 - (refused_for - FULL_PACE_MS) / FADING_MS))
end

-- The slowest pace: the permits left, evenly until shortly before the window's end, and not slower than the limit
-- allows in the contract's window. `routes` that are paced share this.
function pacing.slowest_gap(left, length, permits, window, limit, routes)
  local even = window / math.max(limit, 1)
  if left ~= nil then
    local usable = math.max(left - (1 - SPREAD_FACTOR) * length, left / 2)
    even = math.min(even, usable / math.max(permits, 1))
  end
  return even * routes
end

-- Refused although it kept its pace: twice as slow. One that had begun to fade is kept in full again.
function pacing.slower(gap, strength, window)
  return strength < 1 and gap or math.min(gap * 2, window)
end

-- Refused at the slowest pace, which was faster than what had been learned: this guard lets less through than the limit
-- does. From then on a longer distance is kept, whatever is left of the window.
function pacing.floor(floor, gap, strength, went)
  return strength == 1 and went < gap and math.max(floor, went * FLOOR_FACTOR) or floor
end

-- `hold` is when the guard lets requests through again. The route need not be under the guard: so it waits for that
-- not longer than until `at_most`.
function pacing.wait(last, gap, hold, at_most, now)
  return math.max(last and last + gap or now, math.min(hold, at_most)) - now
end
