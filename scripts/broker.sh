#!/bin/sh
# Prints what leads the provider, the command and applications to the RabbitMQ that withbroker has started, and waits for Ctrl-C.
set -eu

trap 'exit 0' INT TERM
host=${REDELIVER_DEMO_AMQP_URL#*@}
cat <<END

export REDELIVER_RABBITMQ_ENDPOINTS=$REDELIVER_RABBITMQ_ENDPOINTS
export REDELIVER_RABBITMQ_AMQP_ENDPOINTS=amqp://${host%%/*}
export REDELIVER_RABBITMQ_USERNAME=$REDELIVER_RABBITMQ_USERNAME
export REDELIVER_RABBITMQ_PASSWORD=$REDELIVER_RABBITMQ_PASSWORD
export AMQP_URL=$REDELIVER_DEMO_AMQP_URL

Ctrl-C stops the broker, and everything on it is gone.
END
while :; do sleep 3600; done
