package rabbitmqadmin

import (
	"os"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestMain(m *testing.M) {
	brokertest.AtOnce(16) // most of their time they wait for the broker's statistics
	os.Exit(m.Run())
}
