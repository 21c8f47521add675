-- Removes the content of an upload, and reduces its reservation. arguments.rs declares the arguments.
keep = tonumber(keep)
local index = index_of(env, owner)

if id ~= '' then
  remove_blob(env, id)
end

local ends_at = redis.call('ZSCORE', index.uploads, reservation)
local reserved = release(index, index.uploads, reservation)
if keep > 0 and ends_at then
  hold(index, index.uploads, reservation, math.min(keep, reserved), tonumber(ends_at))
end

save_index(index)
return { 'done' }
