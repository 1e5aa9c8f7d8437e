package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestSchemaIsValid asks the provider server for everything it offers, which
// is where the framework checks it.
func TestSchemaIsValid(t *testing.T) {
	t.Parallel()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range resp.Diagnostics {
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
	if got := len(resp.ResourceSchemas); got != 9 {
		t.Errorf("%d resources, want 9", got)
	}
	for name, schema := range resp.ResourceSchemas {
		for _, a := range schema.Block.Attributes {
			if a.Description == "" {
				t.Errorf("%s.%s has no description", name, a.Name)
			}
		}
	}
}
