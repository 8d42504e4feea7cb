-- The operator looks and reports, and acts on nothing. The driver runs on.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["sluice.dev/paused"] = "true"
return obj
