-- Returns the text of the note KEYS[1], and the number of its reads.
local text = redis.call('HGET', KEYS[1], 'text')
if not text then
  return false
end
return { text, redis.call('HINCRBY', KEYS[1], 'reads', 1) }
