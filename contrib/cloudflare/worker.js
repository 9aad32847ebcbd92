// A role of Harness as a Cloudflare Worker: the body that harness-role-remote sends in, the result of the task out.
//
// It plans, and leaves the rest to the role that Harness has without it. The plan is one step that asks the first model
// slot of the definition; a Worker of yours would ask a model here, and say in `usage` what that took.

const MAX_BYTES = 1_048_576;

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return refusal(405, "tasks are posted");
    if (!(await isKnown(request.headers.get("Authorization"), env.TOKEN))) return refusal(401, "who is asking?");
    const text = await read(request);
    if (text === null) return refusal(413, "the question is too large");
    const body = parsed(text);
    if (typeof body?.task?.kind !== "string") return refusal(400, "this is no task");
    if (body.task.kind !== "plan") return refusal(501, "this Worker only plans");
    return Response.json({
      kind: "plan",
      lwir: plan(body.task.workflowSnapshot),
      usage: { inputTokens: 0, outputTokens: 0 }, // no model was asked, and that is known
      events: [{ type: "role.note", payload: { text: "planned by a Worker", system: body.system ?? null } }],
    });
  },
};

// One step: the model is given the input, and has to meet the output of the whole workflow.
function plan(snapshot) {
  const slot = Object.keys(snapshot.modelSlots)[0];
  const schema = snapshot.outputSchema;
  return {
    apiVersion: "harness.lwir/v1",
    kind: "Workflow",
    metadata: { name: snapshot.name }, // a plan of another name is refused
    input: { schema: snapshot.inputSchema },
    output: { schema, value: "{{ steps.answer.output }}" },
    permissions: { models: [slot], tools: [] },
    steps: [
      {
        id: "answer",
        uses: "ai.generate",
        input: { asked: "{{ input }}" },
        with: { model: slot, prompt: snapshot.description ?? snapshot.name },
        output: schema === true ? { mode: "json" } : { mode: modeOf(schema), schema },
      },
    ],
  };
}

function modeOf(schema) {
  return ["object", "array"].includes(schema.type) ? schema.type : "json";
}

// Digests are compared, so that neither the length nor the time tells anything of the token. No token, no answer.
async function isKnown(given, token) {
  if (!given || !token) return false;
  const digest = (text) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await digest(given), await digest(`Bearer ${token}`));
}

// The text of a body, `null` for one that is too large: it is read no further than that.
async function read(request) {
  const decoder = new TextDecoder();
  let text = "", size = 0;
  for await (const piece of request.body ?? []) {
    size += piece.byteLength;
    if (size > MAX_BYTES) return null;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refusal(status, why) {
  return Response.json({ error: why }, { status });
}
