// Prints the type, the task and the id of each event of a stream.
//
//	node eventsource.cjs URL TYPE...
const { EventSource } = require("eventsource");

const [url, ...types] = process.argv.slice(2);
const source = new EventSource(url);
for (const type of types) {
  source.addEventListener(type, ({ data }) => {
    const event = JSON.parse(data);
    console.log(event.eventType, event.job?.id ?? "-", event.eventId);
  });
}
source.addEventListener("error", (failure) => {
  if (source.readyState !== EventSource.CLOSED) return; // it connects again
  console.error("the stream was given up:", failure.code, failure.message);
  process.exit(1);
});
