-- Removes a resource, if there is one.
local owner, uri, entry = ARGV[6], ARGV[7], KEYS[2]
local grace = tonumber(ARGV[8])
local index = index_of(env, owner)

if prune(index, batch) == batch then
  settle(index)
  return { 'again' }
end
local there = redis.call('HMGET', entry, 'blob', 'past')
local blob = there[1]
if blob then
  for _, earlier in ipairs(past_of(there[2])) do
    drop(index, uri, earlier, grace)
  end
  redis.call('DEL', entry)
  retire(index, blob, grace)
  tell(index, 'deleted', uri, 0)
end
if redis.call('ZSCORE', index.names, uri) then
  forget(index, uri)
end
settle(index)
return { 'done', blob and 1 or 0 }
