-- Removes the content of an upload, and what it counts.
local owner, id = ARGV[6], ARGV[7]
local index = index_of(env, owner)

redis.call('UNLINK', env.shard .. 'blob:' .. id)
release(index, index.uploads, id)
save_index(index)
return { 'done' }
