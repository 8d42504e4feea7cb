-- A migration, or a move of positions, that failed is tried again. The operator acts on each value once.
local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["sluice.dev/retry"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
