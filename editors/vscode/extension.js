// Starts the language server (`penstock lsp`) for scripts, lists of tc commands and experiment files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const command = workspace.getConfiguration("penstock").get("path", "penstock");
  const server = { command, args: ["lsp"] };
  const documentSelector = ["shellscript", "tc", "toml"].map((language) => ({ language }));
  client = new LanguageClient("penstock", "Penstock", server, { documentSelector });
  await client.start();
};

exports.deactivate = () => client?.stop();
