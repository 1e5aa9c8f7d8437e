// Package provider is the Terraform provider: schemas, plans, state and
// diagnostics, and nothing else. What a queue is called and which arguments it
// has is computed by internal/topology, what the broker says and how something
// is deleted without losing messages is internal/rabbitmqadmin.
//
// Where to start: runtime.go holds what one run of the provider shares, plan.go
// what the plans of all resources have in common, mirror.go how live objects
// show in state and what of them differs, objects.go how the objects of one
// resource are created and removed, and each resource_x.go is one resource.
//
// Every resource follows one shape. Computed attributes mirror the broker in
// Read and are set to what the configuration computes in ModifyPlan, so that
// drift of any object shows in the plan as a difference of that attribute.
// ModifyPlan computes from the configuration alone. Then plan_check.go holds
// the result against the live broker, and adds diagnostics, never values: what
// exists already, what the broker or a policy would make of it. Refreshes and
// these checks read through one view of the broker for the run, so that the
// number of requests does not grow with the number of resources; an apply,
// which plans every resource again, asks nothing for it.
package provider
