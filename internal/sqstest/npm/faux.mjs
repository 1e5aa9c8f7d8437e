// fauxqs on a free port of 127.0.0.1. Its own command would listen on every address.
import { buildApp } from "fauxqs";
import { serve } from "./serve.mjs";

const app = buildApp({ logger: false });
const prefix = "AmazonSQS.";

// fauxqs lacks ListDeadLetterSourceQueues, without which no queue can be deleted with care.
app.addHook("preHandler", async (request, reply) => {
  if (request.headers["x-amz-target"] !== prefix + "ListDeadLetterSourceQueues") return;
  const ask = async (action, parameters) => {
    const headers = { ...request.headers, "x-amz-target": prefix + action };
    delete headers["content-length"];
    const answer = await app.inject({ method: "POST", url: "/", headers, payload: JSON.stringify(parameters) });
    return answer.json();
  };
  const attributes = async (QueueUrl) =>
    (await ask("GetQueueAttributes", { QueueUrl, AttributeNames: ["All"] })).Attributes ?? {};
  const { QueueUrl } = typeof request.body === "string" ? JSON.parse(request.body) : request.body;
  const { QueueArn } = await attributes(QueueUrl);
  const queueUrls = [];
  for (const url of (await ask("ListQueues", {})).QueueUrls ?? []) {
    const { RedrivePolicy } = await attributes(url);
    if (RedrivePolicy && JSON.parse(RedrivePolicy).deadLetterTargetArn === QueueArn) queueUrls.push(url);
  }
  return reply.type("application/x-amz-json-1.0").send(JSON.stringify({ queueUrls }));
});

await app.listen({ host: "127.0.0.1", port: 0 });
serve(app.server.address().port);
