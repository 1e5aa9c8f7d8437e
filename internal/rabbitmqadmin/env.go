package rabbitmqadmin

import "strings"

// EnvName is the environment variable that says an attribute of a connection, to every program alike: "endpoints" is
// REDELIVER_RABBITMQ_ENDPOINTS.
func EnvName(attribute string) string { return "REDELIVER_RABBITMQ_" + strings.ToUpper(attribute) }
