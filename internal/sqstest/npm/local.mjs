// local-aws-sqs on a free port of 127.0.0.1. A queue that was deleted cannot be made again for 60 seconds, as on AWS.
import sqs from "local-aws-sqs";
import { serve } from "./serve.mjs";

const server = await sqs.createSqsServer({
  hostname: "127.0.0.1",
  port: 0,
  region: "us-east-1",
  accountId: "000000000000",
});
serve(server.address().port);
