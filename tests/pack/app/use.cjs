const { default: init, SessionLogError, SessionStore } = require("sessionlog");

init().then(async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  store.create("s1").append("user/message", { text: "x" });
  console.log(store.get("s1").seq, typeof SessionLogError);
  await store.dispose();
});
