-- Removes the content of an upload, and reduces its reservation to so many bytes; 0 ends it. Either
-- ID may be ''.
local owner, id, reservation, keep = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local index = index_of(env, owner)

if id ~= '' then
  remove_blob(env, id)
end
local until_ = redis.call('ZSCORE', index.uploads, reservation)
local reserved = release(index, index.uploads, reservation)
if keep > 0 and until_ then
  hold(index, index.uploads, reservation, math.min(keep, reserved), tonumber(until_))
end
save_index(index)
return { 'done' }
