// What both programs do: say that they serve, and end when the process that started them does.
export function serve(port) {
  process.stdin.on("end", () => process.exit(0)).resume();
  process.stdout.write(`ready ${port}\n`);
}
