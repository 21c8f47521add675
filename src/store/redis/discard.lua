-- Removes the content of an upload, and ends its reservation. Either ID may be ''.
local owner, id, reservation = ARGV[6], ARGV[7], ARGV[8]
local index = index_of(env, owner)

if id ~= '' then
  redis.call('UNLINK', env.shard .. 'blob:' .. id)
end
release(index, index.uploads, reservation)
save_index(index)
return { 'done' }
