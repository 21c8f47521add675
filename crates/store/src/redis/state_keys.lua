-- Returns the keys that seal what clients carry: the current one first, then all others.
-- Creates a key where there is none, and the next one before the current one is too old.
-- Arguments: a random key, the period after which a key is replaced, and the lead: how
-- long a new key is known before it seals (both in ms).
-- The hash has a field per key, whose value is the time from which the key seals.
local now, period, lead = time(), tonumber(ARGV[2]), tonumber(ARGV[3])
local fields, keys = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #fields, 2 do
  local from = tonumber(fields[i + 1])
  if from + 2 * period <= now then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    table.insert(keys, { key = fields[i], from = from })
  end
end

table.sort(keys, function(a, b) return a.from > b.from end)
if #keys == 0 or keys[1].from + period <= now + lead then
  -- The first key seals at once, because nobody has another one.
  local from = #keys == 0 and now or now + lead
  redis.call('HSET', KEYS[1], ARGV[1], digits(from))
  redis.call('PEXPIRE', KEYS[1], digits(3 * period))
  table.insert(keys, 1, { key = ARGV[1], from = from })
end

local current, others = nil, {}
for _, entry in ipairs(keys) do
  if not current and entry.from <= now then
    current = entry.key
  else
    table.insert(others, entry.key)
  end
end
-- After the clock has gone back, no key seals yet.
current = current or table.remove(others)
table.insert(others, 1, current)
return others
