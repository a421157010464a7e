import sdk = require("@sortie/sdk");
import { runTask } from "@sortie/sdk/worker";

export const code: Promise<number> = runTask((task) => task.check(), { sendOutput: true });
export const client: sdk.Sortie = new sdk.Sortie();
