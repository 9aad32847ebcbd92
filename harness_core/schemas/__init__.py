"""Published JSON Schemas as package data, one ``NAME.schema.json`` each; generated, never written by hand."""
