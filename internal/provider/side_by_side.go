package provider

import "golang.org/x/sync/errgroup"

// atOnce is how many requests one resource sends side by side. Terraform walks ten resources at a time by itself.
const atOnce = 4

// sideBySide does something with every item, some at a time, and returns the first error. The others are done all the
// same: who stops in the middle of a request does not know what came of it.
func sideBySide[T any](items []T, do func(i int, item T) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, item := range items {
		group.Go(func() error { return do(i, item) })
	}
	return group.Wait()
}
