// Command dumpschema prints this provider's schema for tfplugindocs: see "make generate".
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/redeliver/terraform-provider-redeliver/internal/provider"
	"github.com/redeliver/terraform-provider-redeliver/internal/schemajson"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "dumpschema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := providerserver.NewProtocol6WithError(provider.New("dev")())()
	if err != nil {
		return fmt.Errorf("starting the provider: %w", err)
	}
	text, err := schemajson.Marshal(ctx, server, provider.TypeName)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
