// Style sheets are bundled.
declare module "*.css";
