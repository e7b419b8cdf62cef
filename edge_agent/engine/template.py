"""The tool that `styleeyes tools new` writes: it works as it stands and shows what a tool can do."""

from __future__ import annotations

MODULE_TEMPLATE = """\
// A StyleEyes tool. The file's name gives its id; the rules are in the README under "Tools".
export const schemaVersion = "worldagents.tool.v1";

export const metadata = {
  title: "{{title}}",
  description: "Says when the agent should call this tool and what it gets back.",
};

// What the agent may pass. Anything that does not fit is refused before execute runs.
export const inputSchema = {
  type: "object",
  properties: {
    question: { type: "string", minLength: 1, description: "What the wearer wants to know" },
  },
  required: ["question"],
  additionalProperties: false,
};

// What the tool may touch; leave out what it does not need. Also possible:
//   databases: { catalog: { path: "databases/catalog.sqlite", mode: "read" } },
//   images:    { photos: { path: "photos" } },
//   files:     { notes: { path: "notes", mode: "write" } },
//   llm:       { models: ["default"] },
//   conversation: true,
export const capabilities = { camera: true };

// Everything, waiting included, must be done within this time.
export const timeoutMs = 10 * 1000;

export async function execute(ctx, input) {
  await ctx.log("asked", { question: input.question });
  if (ctx.camera.frame === null) {
    return { seen: false, reason: ctx.camera.status.reason };
  }
  const { width, height, ageMs } = ctx.camera.frame;
  return { seen: true, width, height, ageMs };
}
"""
