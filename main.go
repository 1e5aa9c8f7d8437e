// Command terraform-provider-redeliver serves the Terraform provider.
package main

import (
	"flag"
	"log"

	"github.com/redeliver/terraform-provider-redeliver/internal/provider"
)

// version is set when a release is built.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger and print how Terraform attaches to this process")
	flag.Parse()
	if err := provider.Serve(version, *debug); err != nil {
		log.Fatal(err)
	}
}
