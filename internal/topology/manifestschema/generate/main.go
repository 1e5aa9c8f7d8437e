// Command generate writes the manifest's JSON Schema to a file. It runs in the
// directory of package topology, by "go generate".
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology/manifestschema" //nolint:depguard // topology does not import its generator
)

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	schema, err := manifestschema.Generate(".")
	if err != nil {
		return err
	}
	return os.WriteFile(out, schema, 0o644) //nolint:gosec // a file of the repository
}
