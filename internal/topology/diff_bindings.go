package topology

// BindingToQueue and BindingToExchange are the destination types of a binding.
const (
	BindingToQueue    = "queue"
	BindingToExchange = "exchange"
)

// Key identifies the binding by value: two bindings are the same on the broker
// exactly when their keys are. It is stable and made for maps and sorting, not
// for reading.
func (b Binding) Key() string {
	kind := b.DestinationType
	if kind == "" {
		kind = BindingToQueue
	}
	args := make(map[string]any, len(b.Arguments))
	for key, value := range b.Arguments {
		args[key] = canonicalValue(value)
	}
	return CanonicalJSON([]any{b.Source, kind, b.Destination, b.RoutingKey, args})
}

// DiffBindings compares bindings by value. missing are those of want that are
// not live, unexpected those that are live and not in want, each in its own
// order and once. The binding that every queue has to the default exchange is
// nobody's to add or remove and never unexpected.
func DiffBindings(want, live []Binding) (missing, unexpected []Binding) {
	return without(want, live), without(live, want)
}

// without returns the bindings of a that are not in b.
func without(a, b []Binding) []Binding {
	seen := make(map[string]bool, len(b))
	for _, binding := range b {
		seen[binding.Key()] = true
	}
	var out []Binding
	for _, binding := range a {
		if key := binding.Key(); !seen[key] && binding.Source != "" {
			seen[key] = true
			out = append(out, binding)
		}
	}
	return out
}
