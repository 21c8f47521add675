# What jq has and jaq does not; and what jaq does in another way.

# jaq's own moves the last member of an object to the place of a deleted one. jq keeps the order.
def delete_path($path):
  if $path == [] then empty
  elif . == null then .
  elif ($path | length) > 1 then
    if .[$path[0]] == null then . else .[$path[0]] |= delete_path($path[1:]) end
  elif type == "object" then with_entries(select(.key != $path[0]))
  else getpath($path) |= empty end;
def delpaths($paths): reduce ($paths | sort | reverse | .[]) as $path (.; delete_path($path));
def del(f): delpaths([path(f)]);

# jaq's own does not go through null.
def setpath($path; $value):
  if $path == [] then $value
  else
    if . != null then . elif ($path[0] | type) == "number" then [] else {} end
    | if type == "array" and $path[0] == length
      then . + [null | setpath($path[1:]; $value)]
      else .[$path[0]] |= setpath($path[1:]; $value) end
  end;

def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def leaf_paths: paths(scalars);
def toarray: if type == "array" then . else [.] end;
def trimstr($s): ltrimstr($s) | rtrimstr($s);

def tostream:
  path(def r: (.[]? | r), .; r) as $p
  | getpath($p)
  | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f):
  { x: null, e: false } as $init
  | foreach f as $i
      ( $init;
        if .e then $init else . end
        | if $i | length == 2
          then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
          else setpath(["e"]; $i[0] | length == 1) end;
        if .e then .x else empty end
      );
def truncate_stream(stream):
  . as $n | null | stream | . as $input
  | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;

def table_cell(f):
  if type == "string" then f
  elif . == null then ""
  elif type == "array" or type == "object" then error("a list or an object is not valid in a row")
  else tostring end;
def @csv: map(table_cell("\"" + (split("\"") | join("\"\"")) + "\"")) | join(",");
def @tsv:
  map(table_cell(
    split("\\") | join("\\\\") | split("\t") | join("\\t") | split("\n") | join("\\n") | split("\r") | join("\\r")
  )) | join("\t");
